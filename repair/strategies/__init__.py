"""The strategies: what each proposes for a finding, and the reasons why it may refuse.

strategy_registry.py lists them all.
"""
