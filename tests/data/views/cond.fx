opcode         name        target                       args                                    kwargs
-------------  ----------  ---------------------------  --------------------------------------  ---------------------------------
placeholder    x           x                            ()                                      {}
call_function  reduce_sum  torch.sum                    (x,)                                    {'dim': [0, 1], 'keepdim': False}
call_function  greater     operator.gt                  (reduce_sum, 0.0)                       {}
get_attr       then_graph  then_graph                   ()                                      {}
get_attr       else_graph  else_graph                   ()                                      {}
call_function  if          torch.ops.higher_order.cond  (greater, then_graph, else_graph, [x])  {}
output         output      output                       (if,)                                   {}

then_graph:
opcode         name    target        args      kwargs
-------------  ------  ------------  --------  ------
placeholder    x       x             ()        {}
call_function  mul     operator.mul  (x, 2.0)  {}
output         output  output        (mul,)    {}

else_graph:
opcode         name    target        args      kwargs
-------------  ------  ------------  --------  ------
placeholder    x       x             ()        {}
call_function  sub     operator.sub  (x, 1.0)  {}
output         output  output        (sub,)    {}
