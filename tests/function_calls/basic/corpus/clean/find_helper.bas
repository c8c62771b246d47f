PARAM person AS string LIKE "Ann" DESCRIPTION "Who needs help"
DESCRIPTION "Says who helps whom"
IF person = "Ann" THEN
    RETURN "Ben"
END IF
RETURN "Ann"
