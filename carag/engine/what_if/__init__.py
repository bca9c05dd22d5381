"""Tell what a change of policy or groups would open and close, before it is put in force; nothing is written."""
