"""How many contracts may be sold on a link, for customers who always send and for customers who come and go.

`activity` says when customers want what they bought, `market` what is sold where, and makes the experiment
of so many contracts; `answer` finds how many may be sold; `words` and `figure` tell it.

    >>> from inprofile.studies.plan.sell.activity import Activity
    >>> Activity.shares("20 %").most(10, 0.99)
    24
"""
