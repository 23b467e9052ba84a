opcode         name                  target                       args                                                  kwargs
-------------  --------------------  ---------------------------  ----------------------------------------------------  ------
placeholder    x                     x                            ()                                                    {}
get_attr       _tensor_constant0     _tensor_constant0            ()                                                    {}
get_attr       scan_combine_graph_0  scan_combine_graph_0         ()                                                    {}
call_function  scan                  torch.ops.higher_order.scan  (scan_combine_graph_0, [_tensor_constant0], [x], ())  {}
call_function  getitem               operator.getitem             (scan, 0)                                             {}
call_function  getitem_1             operator.getitem             (scan, 1)                                             {}
output         output                output                       (getitem_1,)                                          {}

scan_combine_graph_0:
opcode         name     target        args             kwargs
-------------  -------  ------------  ---------------  ------
placeholder    carried  carried       ()               {}
placeholder    row      row           ()               {}
call_function  mul      operator.mul  (carried, 0.5)   {}
call_function  add      operator.add  (mul, row)       {}
call_function  mul_1    operator.mul  (carried, row)   {}
output         output   output        ([add, mul_1],)  {}
