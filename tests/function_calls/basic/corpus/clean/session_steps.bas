PARAM step AS integer LIKE 2 DESCRIPTION "Step of the form that was completed"
RETURNS before AS integer OPTIONAL DESCRIPTION "The last step that was completed earlier"
RETURNS now AS integer DESCRIPTION "The step"
META x-team "sales"
DESCRIPTION "Remember how far a member got in a form"
before = GET "session.step"
SET "session.step" = step
SET "session.form", "order"
TALK GET SESSION "step"
form = GET "session.form"
who = GET "session.user_name"
TALK form + " of " + who
CACHE SET "last", step, 60
last = CACHE GET "last"
TALK last = step ? "cached" : "not cached"
RETURN {"before": before, "now": step}
