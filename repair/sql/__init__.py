"""What a script is made of: guards, questions to a server, and rows and statements as SQL.

Nothing here knows a plan. `binlog show --undo` and `--redo` use these modules too.
"""
