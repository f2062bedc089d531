"""The measures of runs, with their statistics: figures over the seeds, contracts, delays, flow times."""
