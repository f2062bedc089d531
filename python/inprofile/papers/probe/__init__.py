"""Paper C: the adaptive low-priority ("probe") marker of Neglia, Bianchi, Saitta and Lombardo."""
