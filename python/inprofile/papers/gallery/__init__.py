"""Results published since on policers, BBR, Prague and fairness: papers as data, answered like the five."""
