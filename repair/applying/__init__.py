"""Applying a written plan: what its files say, what is sent, and what a server must look like then.

It opens no connection and writes no file: repair/adapters/ does both.
"""
