"""Paper E: the TCP-window aware marker and dynamic WRED (Bouras and Sevasti, 2004)."""
