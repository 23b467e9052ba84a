opcode         name           target                      args                             kwargs
-------------  -------------  --------------------------  -------------------------------  ------
placeholder    x              x                           ()                               {}
get_attr       linear_weight  linear.weight               ()                               {}
get_attr       linear_bias    linear.bias                 ()                               {}
call_function  linear         torch.nn.functional.linear  (x, linear_weight, linear_bias)  {}
call_function  relu           torch.relu                  (linear,)                        {}
output         output         output                      (relu,)                          {}
