"""Small tools without state: calculation, dice, time; and the time zone of a member."""
