PARAM	name	AS string	LIKE "Ann"	DESCRIPTION "Who comes"
PARAM guests   AS   integer  LIKE 2  DESCRIPTION "How many come along"
DESCRIPTION   "Note who comes to the party"
	
	SAVE "party", name, guests
	all = FIND "party"
	sum = 0
	FOR EACH row IN all
		sum = sum + row.guests + 1
	NEXT
	TALK "So far " + sum + " people."
