"""The content of transactions, and its comparison between the logs of two servers."""
