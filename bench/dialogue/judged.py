"""The judgement of one reader: the follow-ups, by number, that are not read as their author meant them.

A follow-up is read as meant if company or document, period and measure are the same, as far as the user's own words
name them. Numbers count the second and third turns of all dialogues, from 1.
"""

NOT_AS_MEANT = frozenset(
    [*(6, 19, 20, 33, 41, 42, 50, 51, 59, 60, 73), *(74, 79, 80, 81, 88, 93, 101, 104, 106, 116, 118)]
)
