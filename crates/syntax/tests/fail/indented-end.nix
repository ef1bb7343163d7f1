'' a ${b} c
