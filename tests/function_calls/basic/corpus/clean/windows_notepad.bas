PARAM colour AS string LIKE "red" DESCRIPTION "Favourite colour"   
	DESCRIPTION "Written with a Windows editor"	
	  
IF colour = "red" THEN  
		TALK "Red it is."   
ELSE	
  	TALK "Not red, but " + colour + "."
END IF  	

	list = ["a",	
		"b",  
	"c"]
WITH entry	
	colour = colour
	count	=	COUNT(list)
END WITH
TALK "Entry: " + entry.colour + entry.count  
RETURN entry.count
