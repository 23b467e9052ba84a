opcode         name                     target                             args                                                                                kwargs
-------------  -----------------------  ---------------------------------  ----------------------------------------------------------------------------------  ------
placeholder    x                        x                                  ()                                                                                  {}
get_attr       _tensor_constant0        _tensor_constant0                  ()                                                                                  {}
call_function  lt                       operator.lt                        (_tensor_constant0, 5)                                                              {}
get_attr       while_loop_cond_graph_0  while_loop_cond_graph_0            ()                                                                                  {}
get_attr       while_loop_body_graph_0  while_loop_body_graph_0            ()                                                                                  {}
call_function  while_loop               torch.ops.higher_order.while_loop  (while_loop_cond_graph_0, while_loop_body_graph_0, (lt, _tensor_constant0, x), ())  {}
call_function  getitem                  operator.getitem                   (while_loop, 1)                                                                     {}
call_function  getitem_1                operator.getitem                   (while_loop, 2)                                                                     {}
output         output                   output                             (getitem_1,)                                                                        {}

while_loop_cond_graph_0:
opcode       name    target  args      kwargs
-----------  ------  ------  --------  ------
placeholder  go_on   go_on   ()        {}
placeholder  i       i       ()        {}
placeholder  x       x       ()        {}
output       output  output  (go_on,)  {}

while_loop_body_graph_0:
opcode         name    target        args                 kwargs
-------------  ------  ------------  -------------------  ------
placeholder    go_on   go_on         ()                   {}
placeholder    i       i             ()                   {}
placeholder    x       x             ()                   {}
call_function  add     operator.add  (i, 1)               {}
call_function  lt      operator.lt   (add, 5)             {}
call_function  relu    torch.relu    (x,)                 {}
call_function  mul     operator.mul  (relu, 1.5)          {}
call_function  add_1   operator.add  (mul, 0.1)           {}
output         output  output        ((lt, add, add_1),)  {}
