1 + (let ${a} = 1; in a)
