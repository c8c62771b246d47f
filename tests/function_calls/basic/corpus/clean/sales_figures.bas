DESCRIPTION "Figures from a list of sales"

sales = [
    { region: "north", amount: 100, year: 2023 },
    { region: "south", amount: 250, year: 2024 },
    { region: "north", amount: 300, year: 2024 }
]
north = FILTER sales, "region=north"
TALK COUNT(north) + " sales in the north"
TALK AGGREGATE("SUM", sales, "amount")
sum_north = AGGREGATE "SUM", north, "amount"
average = AGGREGATE "AVG", sales, "amount"
fewest = AGGREGATE "MIN", sales, "amount"
how_many = AGGREGATE "COUNT", sales, "amount"
TALK sum_north + " / " + ROUND(average, 2) + " / " + fewest + " / " + how_many
one = FIRST(north)
other = LAST(north)
TALK one.year + "-" + other.year
RETURN sum_north
