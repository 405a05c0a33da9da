"""The code of `lock_wait.c` for x86-64, which `tools/compile_lock_wait.py` writes."""

from typing import Final

SOURCE: Final = "eed45475507d810b864f963949b4ecf0ce8ee5b6093c1a5dbc9eca2b2c2d3527"
"""The SHA-256 of the source."""
OFFSETS: Final = {
    "acquire": 0,
    "acquire_at_start": 336,
    "release": 352,
    "on_signal": 432,
    "given": 4096,
    "now": 8192,
}
CODE: Final = (
    "Oo`v?3ub064<Cd800000RZ~cV>=^Ka1?nFF00HoW1>PS300A-EWJrqyB@h4r07y9n7!UvebvBCy)E@u<g}@JmjQ{`u{}"
    "r+i008iV1-2gm00HoWEv6p;00BsY#25+KTV2Cu4<Cd800000G15ti_(d_&xViuU07!|~NQu@D1xSqztRDaXNr}RV@bE+"
    "ru@MiHz>Qh~54OOCzz>9v0000;W70^C1y3IU07${&1WbuU0ziueKpy}Ag}`(?!Q%*v1xFtM0ENI0gmeG@|1rRa1vei60"
    "J;GH002cX(nyUxC?5a-xXJ(k07!|}4+ZH>|Ns9FA4C8Ey#W9K0EaF09smG^?RB*=$w-SeFb@C#NR50X2uO_;Oa}k}{}m"
    "Pw004!+be4xL%pL#$>yAi+!4QM{5OfEL+UZIE|Nk-D>23f2{|_GkG5_hg{{R1G4<Cd800000Q;GXP54QjR6`KwK0KxkR"
    "br$f01(qHF00HoWEruQd00CRW4<A4PgTn$yjRkfd001%4NMqYb!Q%u-0oaES>(FLqE)O4s0000001qDkiv?01004!+4~"
    "`-M002Q$RZ~cb(@2Bt5dRfX4gdg1iN*gFKn?%^NQLcm4~4*V3;z{C4gdg1ImL7dNQ1->TU|k1!$^yhr~m)}NQ;Y*0001"
    "hIu8$o1OWg5F~CTJ`TP%rC;<QfhXoEE001%4Nr}-+i-Vv5002qB;1EnRgQx%i0E-3j9RL7@z)cTD$V`U~=p6t6MKRL2x"
    "&QzGNQu`-iPjGVhXu+V004^x$Q=LxO*z4JgN48kgnR%0|44@wxE%lh{}r+g002pe#PEX!j~xI20l5GF|NliX$uZkz4{r"
    "r!2><}SBLDyZNQvhUA4C8EM2iJo9RL7}6;mAm06{sxbp(adekw8BG13ny1SCZ<(nyKuNQu@D1wn(s0Yr(w>&|8mA4C8E"
    "!w(;T00000gTnzqf%)eH004glgZpH4$4G<35KM{ZTU|k1|0OOB003qWA4C8EfO-K14~6pn|NlsX`8{_;NVow20001}03"
    "b*YqsR}Ezz?>->EHhU{|_I400000_rm@U000k!%>MuXfO`H94~4@1|Nk+-fO`K050t>^wEqA9xB&nF07!xP$^ZZW4}_x"
    "r|NlsV`S$<-01t(U{{R2!kpBPw4<Cd800000L02)-MKRL2x&QzGK~_kK*GP%hK~+IiRZ~cT?4S<-01pL8iNv@k0000F1"
    "xSlEv<v_MNQuQr$H$!i|NpoF0RRBH000R94+Thtzz>N10000<iN#2bTqKyd*#H0lx&ROW08EMRNQvGL1xSU!501zH002"
    "yhY$T9Dzb60y07;3(4<A4PMKQn+A4C8EN{v(l6A!imjY!ad`3ZMqMKQ?_A4C8EgXl0rjSPuMgTet1zQ9C{3`h^Q0*y$}"
    "fcXh_<3%~l50%11In581z=XndFGYpPbSg2@Op7(;3jhF3W64D^(oBi?NQu`-iPjGVNQuWxiO#s{0000?iSiExLJzk@1g"
    "J>?z)d;m4~%;M|Nlsfd?b)XG19o%0000;iQc*Z5C8xV1xbm;NQJ-;k5B*q|4fT)B#<%EMKRL20{{R3Oo{JEiPjGVNP)z"
    "l4*&pLT|rzyT|r(!U&Cf*E)O4s0000001qDkiv<Q7004_M1RDSV0q~0r1RDSV0mzFL2pa$Z0no#cRZ~cb`$&WA2>%t~3"
    "IG6wz;qc%i!IIy0093LzzP5WiO2ud@Ph@|8UO$RF~Elf%o+dyNQ1-(NQu~6UBhOOL03UmK~+IiRf+XeNQvu6gX{={{Rw"
    "w4xXsMW%t#Nf#Yn;EBaH-r0l+E4NR3AUgTpY0A4r452wPo2TtQtyUO`{O4<A4PzRk?c%t?vtOb@T-Nx|$RMTzBu{bP41"
    "xXsMW%t(XB0Z9+9#Yn;EBaH-r0l+~i#6g3^Fhq!F|Lc_xA4C8EO^NPI53lw~!R{kPiT8p1=K}x$cPhBe%*@P4gU10$53"
    "k2a!RRB61b_j+K`F*TgT^pKh<E?%pAR2^00000Ne{30NWtzS=qvyK|450)>%?XcA4C8EK~+IiRY-~bQ%HgA2nYZGNQ(t"
    "A3IG5|iQ^Bp5J`#Hgwk{t4<A4PNQ1xuL5L7ZgTMg~wh)BUb?!)w6}K4x05QN1A4C8EgTMhugTfGtO7KjJO8A5L4-bzC0"
    "RRAn$#msGiOPfd2@i)M0RRBF&CJZqNsUkeNe{2WNWthMjRb%Jz$w9l!7xFH2uO=f01vhSgurwe4<Cd800000NQ1!vhyq"
    "B1!T}Gq0ffMH??{a`xCsCNNR56#NQ(wYg}`+c>l<b+4<Cd800000Njb@Mb4Y{05J-y%NQKFD??{8j2uL~pb<#+S4NnOG"
    "01vhSgur!J4<Cd800000NQ+Gf54Hh>z;qT5A4C8ENQ1!vhyqB1!T}Gq0ffMH??@@yMKRL20RR91zXAXN07!}64+Thp#0"
    "Urg09#!_TtQvK4<A4PNQ+1a>kMX)hyqB1!U0Hw!2u7p0ffMH@9UipA4C8Eg~<<v^Zx(;G15gb(zqu8002md*GP%h4+V+"
    "AL5a$P`3Vn(-~RvqxXsMW%uR{YOb@TvNx|zQM2Xsi`D1q`xXsMW%t?d50Z0$8!brjBBaH-r0l+~i!$FNhFhPhw|LLLr|"
    "Nlve)JzYr;7P&kBSnejf%)eH004I;xXsMW%t?d50Zb3C=t;rtBSVcutpEYQK`F#RjYK3cL5M*A>z+vuuf<G>$4J5GBS?"
    "wH=mY)#|4E6!>%wMcE)O4s0000001qDkL03V#2mk;8G15r5|NsAg{{R2~K~_OkK~z;!NQ3M+NQrzT2uO`|BpAN}0000;"
    "i9{qAxDEgS01pM|Q2hV@LA?wB002cX<V7+6iNpUDOa}k}g}`)kMKShBjcg<!MKRL2BLDyZW)E)#5CZ@JNQv)EiS|s1@("
    "(FQBp?q3iv<!F004!+ehugW{Qv(s*bjuU0002!^!xw+IoNbS=<ECc|B1tk1^X5N0E74eO&RS)G2}%t|3QQ03rT~;0sj@"
    "*1^@tsz;%sCi$o*{NQ1;UTU|k1L0v&!L0`j==&Sqx|4D<y0g1zl1-BLe0E74eO&RS$gXIfJgT(<!gZwfNhHn7?07WtXi"
    "v@-j004!+505ne|NpoF0001o1%DO*0O)4>|Nl9|4}@+3001$-hXraD002cX<V7+6=?VY;{|_GkNsUJVNQnd_iv>Ow004"
    "!+4~`-M002xmEF^PONQ(p{NIM0I1^@sLgW3Q907#1kga!ZrOp81uNQ3ABOgZ=ugTem)|45BJoCW{@=r{cT|1r`<G19o_"
    "0000;i#<jL002md)(-{gn*RU)4<A4PF~Elf_!R&EMKS+DxF-Mr07Ws<Oo_luiT_NA{!EGb4+Tt%4F?7Q08C@(Oo_k`1x"
    "Sg<Oo{He>Hq)$Oo_@51wp+d0000;iSJB_{!EGbW)E)-Z~*`SOo`|ZDNH0F4+V<_m=yp3g}@JlBLM&aiv@}m004!+4~5b"
    "I002mf1SCw2EC5K01SCj11+N7F01tvD|NsBE0RR91hXqm<004!+4}}x||NlshJ+}n_0O(@-|NrR%|Ns9FA4C8EMKS;B&"
    "i()Yiv=nb004!+4~5YF|NlvY#{*3{?{hUwi##OhuKoZ2iv{u&004!+508ZY|NliX(zwb1006oH0000?iT+59J>L`n01p"
    "M}X8!;GxB&nF0EY$H6aWBBi##NSzz>CM{r~?l$w-Se>;wP+NR1V}`Tzg_71sm+0ENJGnna24hXtw>008Tciv_L}004!+"
    "4}>89|Nk-4MKRL2CjbBdNQu`-iPlVG1&b5_08EPwv;+VE4+Thx$4rUFxat4^08EL>4+ZJ#{{R2z(D(oUMKRJ$iReg)?`"
    "98g6(0Zq08EMgOo{prDO4mN4+ZJ9{{R1GE)O4s0000001qDk000000000004*^A000000000000000Ktc}"
)
"""In base 85; the rest of the pages is zero."""
