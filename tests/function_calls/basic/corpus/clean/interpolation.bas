PARAM item AS string LIKE "lamp" DESCRIPTION "What is bought"
PARAM amount AS integer LIKE 3 DESCRIPTION "How many"
DESCRIPTION "Values within texts"

price = 2.5
order = { item: item, lines: [1, 2] }
TALK "${amount} x ${item} = ${amount * price}"
TALK "Nested: ${UCASE(order.item)} and ${order.lines[1]}"
TALK "first line\nsecond line\ttabbed"
TALK 'single "quoted" text'
TALK `back ${item} ticks`
TALK "quoted ""twice"" here"
TALK "a \"b\" c"
TALK "costs $5, no ${""} more"
BEGIN TALK
Dear friend,
  ${amount} ${item}s it is.
END TALK
RETURN "${item}-${amount}"
