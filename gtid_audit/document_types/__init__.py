"""The types of the JSON documents that commands print, from which docs/reference is made.

command_documents.py lists the documents of each command; the other modules declare their types.
"""
