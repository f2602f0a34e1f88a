"""Where topology meets the world: live servers, pasted output, files, memory."""
