{ inherit a 1; }
