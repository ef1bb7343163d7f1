f: g: [ (g f or) f or (f or) ]
