opcode         name        target                       args                                           kwargs
-------------  ----------  ---------------------------  ---------------------------------------------  ------------------------------------------------------------------------
placeholder    x           x                            ()                                             {}
get_attr       body_graph  body_graph                   ()                                             {}
call_function  scan        torch.ops.higher_order.scan  (body_graph, [[0.0, 0.0, 0.0, 0.0]], [x], [])  {'dims': [0], 'reverse': [0], 'output_dims': [0], 'output_reverse': [0]}
call_function  getitem     operator.getitem             (scan, 0)                                      {}
call_function  getitem_1   operator.getitem             (scan, 1)                                      {}
output         output      output                       (getitem_1,)                                   {}

body_graph:
opcode         name     target        args             kwargs
-------------  -------  ------------  ---------------  ------
placeholder    carried  carried       ()               {}
placeholder    row      row           ()               {}
call_function  mul      operator.mul  (carried, 0.5)   {}
call_function  add      operator.add  (mul, row)       {}
call_function  mul_1    operator.mul  (carried, row)   {}
output         output   output        ((add, mul_1),)  {}
