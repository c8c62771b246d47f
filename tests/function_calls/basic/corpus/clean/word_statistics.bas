PARAM text AS string LIKE "the cat and the dog" DESCRIPTION "Text to look at"
DESCRIPTION "Counts the words of a text"

counts = {}
FOR EACH word IN SPLIT(LCASE(TRIM(text)), " ")
    IF word <> "" THEN
        IF counts[word] THEN
            counts[word] = counts[word] + 1
        ELSE
            counts[word] = 1
        END IF
    END IF
NEXT word

TALK "the: " + NVL(counts["the"], 0)
longest = ""
FOR EACH word IN SPLIT(text, " ")
    IF LEN(word) > LEN(longest) THEN longest = word
NEXT word
TALK "longest: " + longest
RETURN counts
