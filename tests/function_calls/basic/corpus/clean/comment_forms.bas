# a hash comment before everything
REM a rem comment
' an apostrophe
// two slashes

DESCRIPTION "All forms of comments" ' also behind a statement

x = 1 # one
y = 2 // two
z = 3 ' three
REM TALK "not said"
# TALK "not said"
// TALK "not said"
' TALK "not said"
IF x = 1 THEN ' then some
    TALK "it's # not // a ' comment" // but this is
    rem lower case works as well
END IF ' done
url = "http://example.com/a//b#c"
TALK url
list = [1, ' first
        2, # second
        3] // third
TALK COUNT(list) ' that's all, "folks"
RETURN x + y + z ' six
#
'
REM
//
