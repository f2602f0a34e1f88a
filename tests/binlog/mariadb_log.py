"""A binary log of MariaDB 10.11.19, as its server wrote it.

It has a CREATE DATABASE, a CREATE TABLE, an INSERT and an UPDATE in row format, with annotations,
and ends with FLUSH BINARY LOGS: deflated, in base 85.
"""

from base64 import b85decode
from zlib import decompress

_PACKED = """
c-s4yl$m#OHB&Y}I|Bp5A0TF61Q9F@h6Z|uhI)pUy1t1;nTak=x(3=QsY!-
LrG~mW`RNQ;0LU0&3tk2e1|bF(AP{0;c*4LU#Q~J!;NV~aQe0eI5T$Si-
2sa*3j;6EIY1XMrnzwyfgHUU<ab#RW<)6TWVU?_l3WOq)COV?u%rMG=Ym2+7Z`AQ1|VQ)_~-
ik^FXDGKuWcMxCp3}g8|7f22BXXVYxyPq>>4wG7yLlgH^IXRRK9t5C)K?5CUScF&CGluqZMp0+ppOBp0P7mZU1AB$g
y5B^Co2QQSIhC|17(8_0xdb@H(pQ{h(E0C6T0B%<L!8IRSCa1)_U06HKCXun>Gf<|VFLS|lxLP1d`FkmVbvQsN{6v`
CJ5{r^E5{op93^X;_RQUN&TsfHu<Vt2FSMorpqA#kGK`Ix3RGI?u39!YPdBv$kB_M0^!FHA<=9H!uD`*(%s3)pxp8i
u82ht=A(xd~#U%;A}p<&9H!oXO<z{JeYB*MUC6wm>V0dbI84Iq|bMpnzj{09_mjEQ>B&#VTi69B1`2V!d^bqoylNu^
Iwe3Z(J9Fa&qa@czNEZj$+bTk2MMrlC`I3|IfDNY4?$W}c`eWGf>FBE_5VaDkXtL`n!Kx!pGY7Kz+4Vph-
9)VCvHE&LCMDY(d3v%?I(iF7>Nwa{Y^?}$5MH(%|8-3sB=m`LnMWa*
"""
MARIADB_LOG = decompress(b85decode("".join(_PACKED.split())))
