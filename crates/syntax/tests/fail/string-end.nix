"a ${b
