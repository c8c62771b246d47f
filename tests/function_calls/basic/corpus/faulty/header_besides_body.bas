PARAM city AS string LIKE "Oslo"
TELK city
