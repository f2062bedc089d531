"""What is measured of runs, with its statistics: figures over the seeds, contracts, delays, flow times."""
