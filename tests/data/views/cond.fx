opcode         name           target                       args                                     kwargs
-------------  -------------  ---------------------------  ---------------------------------------  ---------------------------------
placeholder    x              x                            ()                                       {}
call_function  sum_1          torch.sum                    (x,)                                     {'dim': [0, 1], 'keepdim': False}
call_function  gt             operator.gt                  (sum_1, 0.0)                             {}
get_attr       true_graph_0   true_graph_0                 ()                                       {}
get_attr       false_graph_0  false_graph_0                ()                                       {}
call_function  cond           torch.ops.higher_order.cond  (gt, true_graph_0, false_graph_0, (x,))  {}
call_function  getitem        operator.getitem             (cond, 0)                                {}
output         output         output                       (getitem,)                               {}

true_graph_0:
opcode         name    target        args       kwargs
-------------  ------  ------------  ---------  ------
placeholder    x       x             ()         {}
call_function  mul     operator.mul  (x, 2.0)   {}
output         output  output        ((mul,),)  {}

false_graph_0:
opcode         name    target        args       kwargs
-------------  ------  ------------  ---------  ------
placeholder    x       x             ()         {}
call_function  sub     operator.sub  (x, 1.0)   {}
output         output  output        ((sub,),)  {}
