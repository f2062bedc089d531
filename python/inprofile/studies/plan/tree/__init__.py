"""How many more customers fit at each level of an access network, and which link breaks first.

`network` says where customers can be added and makes the experiment with so many; `answer` finds how many
fit; `words` tells it.

    >>> from inprofile.studies.plan.tree.network import paths_below
    >>> paths_below("-1", ["-1-1", "-1-2", "-10-1"])
    ['-1-1', '-1-2']
"""
