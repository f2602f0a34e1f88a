"""What readings prove about a cluster: set algebra, and the positions of threads.

cluster_facts.py joins all facts of a cluster. Facts contain no finding: topology/rules/ decides.
"""
