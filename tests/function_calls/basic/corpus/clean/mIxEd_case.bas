Param UserName As String Like "Zoe" Description "Who is greeted"
description "Keywords and names in any case"

Let GREETING = "hi " + username
If Len(greeting) > 3 Then
    talk Greeting
Else
    Talk "short"
EndIf
For Each Letter In Split("x-y-z", "-")
    Talk LETTER
Next
counter = 0
do while COUNTER < 2
    Counter = counter + 1
loop
Select Case Counter
    case 2
        Return "two"
    Case Else
        return "other"
end select
