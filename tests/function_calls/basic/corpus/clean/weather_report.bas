PARAM city AS string LIKE "Lisbon" DESCRIPTION "City to look up"
DESCRIPTION "Tells the current weather of a city"

url = "https://api.example.org/v1/weather?q=" + REPLACE(city, " ", "%20") + "&units=metric"
data = GET url

IF data.error THEN
    TALK "No weather for " + city + ": " + data.error.message
    RETURN NULL
END IF

temp = ROUND(data.main.temp, 1)
wind = NVL(data.wind.speed, 0)
sky = data.weather[0].description

TALK "${city}: ${sky}, ${temp} °C, wind ${wind} m/s"

IF temp < 5 THEN
    TALK "Take a coat."
ELSE IF temp > 28 THEN
    TALK "Drink enough water."
END IF

RETURN { "city": city, "temperature": temp, "sky": sky }
