PARAM dish AS string LIKE "Margherita" DESCRIPTION "Which pizza"
PARAM size AS string ENUM ["small", "medium", "large"] LIKE "medium" DESCRIPTION "Size of the pizza" DEFAULT "medium"
PARAM extra AS string LIKE "olives" DESCRIPTION "Extra topping" OPTIONAL
PARAM count AS integer LIKE 2 DESCRIPTION "How many" DEFAULT 1
PARAM deliver AS boolean LIKE true DESCRIPTION "Whether it is delivered" OPTIONAL
DESCRIPTION "Orders pizza"

text = count + " x " + dish + " (" + size + ")"
IF extra <> "" AND extra IS NOT NULL THEN
    text = text + " with " + extra
END IF
IF deliver THEN
    text = text + ", delivered"
END IF
TALK text
RETURN text
