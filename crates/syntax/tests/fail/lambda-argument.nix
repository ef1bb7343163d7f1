f x: x
