PARAM patient AS string LIKE "Maria Lopez" DESCRIPTION "Who is coming"
PARAM day AS date LIKE "2025-03-14" DESCRIPTION "Day of the appointment"
PARAM slot AS string LIKE "10:30" DESCRIPTION "Time of the appointment, HH:mm"
DESCRIPTION "Books an appointment unless the slot is taken"

' somebody else has the first slot of the day
SAVE "appointments.csv", #{ day: "2025-03-14", slot: "09:00", patient: "Joe" }

taken = FIND "appointments.csv", "slot=" + slot
IF UBOUND(taken) > 0 THEN
    TALK "Sorry, " + slot + " is taken by somebody else."
    TALK "Try another time."
    RETURN FALSE
ELSE
    SAVE "appointments.csv", #{ day: day, slot: slot, patient: patient }
    all = FIND "appointments.csv"
    TALK patient + " is booked at " + slot + ", appointment no. " + UBOUND(all)
    RETURN TRUE
END IF
