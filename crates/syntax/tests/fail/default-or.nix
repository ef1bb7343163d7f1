a.b or
