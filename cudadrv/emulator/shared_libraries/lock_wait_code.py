"""The code of `lock_wait.c` for x86-64, which `tools/compile_lock_wait.py` writes."""

from typing import Final

SOURCE: Final = "9abb858ece3737f755b38d72b2cd929df18d932784f7cfdbcdf7ad73547d9ee8"
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
    "r+i008iV1-2gm00HoWEv6p;00BsY#25+KTV2Cu4<Cd800000G15ti_(d_&xViuU07!|~NQu@D1xSqzq#pnPNr}RV@bE+"
    "ru@MiHz>Qh~54OOCzz>9v0000;W70^C1y3IU07${&1WbuU0yv8WKpy}Ag}`(?!Q%*v1xFtM0ENI0gmeG@|1rRa1vei60"
    "J;GH002cX(nyUxC?5a-xXJ(k07!|}4+ZH>|Ns9FA4C8Ey#W9K0EaF09smG^?RB*=$w-SeFb@C#NR50X2uO_;>;?b;{}m"
    "Pw004!+be4xL%pL#$>yAi+!4QM{5OfEL+UZIE|Nk-D>23f2{|_GkG5_hg{{R1G4<Cd800000Q;GXP54QjR6`KwK0KxkR"
    "br$f01(qHF00HoWEruQd00CRW4<A4PgTn$yjRkHV001%4NMqYb!Q%u-0oaES>(FLqE)O4s0000001qDkiv?01004!+4~"
    "`-M002Q$RZ~cb(@2Bt5dRfX4gdg1iN*gFKn?%^NQLcm4~4*V3;z{C4gdg1ImL7dNQ1->TU|k1!$^yhr~m)}NQ;Y*0001"
    "hIu8$o1OWg5F~CTJ`TP%rC;<QfhXn>6001%4Nr}-+i-Vv5002qB;1EnRgQx%i0E-3b9RL7@z)cTD$V`U~;2i(}MKRL2x"
    "&QzGNQu`-iPjGVhXukN004^xz#RYpO*z4JgN48kgnR%0|44@wupIyZ{}r+g002pe#PEX!j~xI20l5GF|NliX$uZkz4{r"
    "sv2><}SBLDyZNQvhUA4C8EM2iJo9RL7}6;mAm06{sxbp(adekw8BG13ny1SCZ<(nyKuNQu@D1wn(s0Yr(w>&|8mA4C8E"
    "!w(;T00000gTnzqf%)eH004glgZpH4$4G<35KM{ZTU|k1|0OOB003qWA4C8EfO-K14~6pn|NlsX`8{_;NVow20001}03"
    "b*YqsR}Ezz?>->EHhU{|_I400000_rm@U000k!%>MuXfO`H94~4@1|Nk+-fO`K050t>^wEqA9xB&nF07!xP$^ZZW4}_x"
    "r|NlsV`S$<-01t(U{{R2!kpBPw4<Cd800000L02)-MKRL2x&QzGK~_kK*GP%hK~+IiRZ~cT?4S<-01pL8iNv@k0000F1"
    "xSlEv<v_MNQuQr$H$!i|NpoF0RRBH000R94+Thtzz>N10000<iN#2bTqKyd*#H0lx&ROW08EMRNQvGL1xSU!501zH002"
    "yhY$T9Dzb60y07;3(4<A4PMKQn+A4C8EN{v(l6A!imjY!ad`3ZMqMKQ?_A4C8EgXl0rjSPuMgTet1zQ9C{3`h^Q0*y$}"
    "fcXh_<3%~l50%11In581z=XndFGYpPbSg2@Op7(;3jhF3W64D^(oBi?NQu`-iPjGVNQuWxiO#s{0000?iSiExLJzk@1g"
    "J>?z)d;m4~%;M|Nlsfd?b)XG19o%0000;iQc*Z5C8xV1xbm;NQJ-;k5B*q|4fT)B#<%EMKRL20{{R3Oo{JEiPjGVNP)z"
    "l4*&pLT|rzyT|r(!U&Cf*E)O4s0000001qDkL03UmK~+IiRf+XeNQvu6gX{={{Rww4xXsMW%t#Nf#Yn;EBaH-r0l+E4N"
    "R3AUgTpY0A4r452wPo2TtQtyUO`{O4<A4PzRk?c%t?vtOb@T-Nx|$RMTzBu{bP41xXsMW%t(XB0Z9+9#Yn;EBaH-r0l+"
    "~i#6g3^Fhq!F|Lc_xA4C8EO^NPI53lw~!R{kPiT8p1=K}x$cPhBe%*@P4gU10$53k2a!RRB61b_j+K`F*TgT^pKh<E?%"
    "pAR2^00000Ne{30NWtzS=qvyK|450)>%?XcA4C8EK~+IiRY-~bQ%HgA2nYZGNQ(uL3IG5|iQ^Bp5J`#Hgwk{t4<A4PNQ"
    "1xuL5L7ZgTMg~wh)BUb?!)w6%QH!05QN1A4C8EgTMhugTfGtO7KjJO8A5L4-bzC0RRAn$#msGiOPfd2@i)M0RRBF&CJZ"
    "qNsUkeNe{2WNWthMjRb%Jz$w9l!7xFH2uO=f01vhSgurwe4<Cd800000NQ1!vhyqB1!T}Gq0ffMH??{a`7zzLYNR56#N"
    "Q(wYg}`+c>l<b+4<Cd800000Njb@Mb4Y{05J-y%NQKFD??{8j2uL~pb<#+S4X+6R01vhSgur!J4<Cd800000NQ+Gf54H"
    "h>z;qT5A4C8ENQ1!vhyqB1!T}Gq0ffMH??@@yMKRL20RR91zXAXN07!}64+Thp#0Urg09#!_TtQvK4<A4PNQ+1a>kMX)"
    "hyqB1!U0Hw!2u7p0ffMH@9UipA4C8Eg~<<v^Zx(;G15gb(zqu8002md*GP%h4+V+AL5a$P`3Vn(-~RvqxXsMW%uR{YOb"
    "@TvNx|zQM2Xsi`D1q`xXsMW%t?d50Z0$8!brjBBaH-r0l+~i!$FNhFhPhw|LLLr|Nlve)JzYr;7P&kBSnejf%)eH004I"
    ";xXsMW%t?d50Zb3C=t;rtBSVcutpEYQK`F#RjYK3cL5M*A>z+vuuf<G>$4J5GBS?wH=mY)#|4E6!>%wMcE)O4s000000"
    "1qDkL03V#2mk;8G15r5|NsAg{{R2~K~_OkK~z;!NQ3M+NQpcoNR4zP7{3Al002mdL?jrv4gdfE4+Ulq@4!rrY$PB>G19"
    "o?0000FDMTb7Oo{Ff1x#sVBp?9FnmbGbWF#m-zYG8X05R=FG4_ich!+3=ixq|!0005giv@-k0005Q{}pxz004!+4}``5"
    "003qWZw;0M001%4MKRJ$iSM{00000;iPjG(Oe7!=1&aki7XSc-zz>hH0002K0RR91NQ1=ziv=zh004^(EEfO(0mzFLEE"
    "fO(0njnhIm1W~Me2(k5ElRdiwzDJ0005Yiv<oB0005Qh4yqQW)JVcMKRL2<NyEwOo{FfDMTb7zXAXN01pLBX=EfI0Lq#"
    ">Oao*jD2oNz761T)_yJ8B|3QQ23rT~=0Z4=WG7pE@0000*G4}rzum%7Cg}@JmI{*LwNQ(p{NQ1;UTU|k1L0v&!L0`iUA"
    "4C8Eiv@-j004_Mgcbk*0q~0rgcbk*0mwPS4}~%R|Nlt1tE#H1s;a80NrT1#NV!#2RaI40RTW7Ouf|Bh$O1??!4HGE000"
    "0@IsOlW1OWg5iv=zg004!+500k+002xoHG>8K01tz90RR9<iv@lL002mX=mAVQ@DGEP{{R0-jXjzM008LK`~Uwj(nT@S"
    "xaR->07#2HL<Rr=NQu@D1?g`7|Nmw#4<Cd800000iv`jZ004!+504rD|NpoF0001o1<Mrx0E-2^6#xK>4Z9Tp00GF06}"
    "uGx00GcB!w-Zx0RR9oz=s8;6#xJ+?L{&6=^Ot4{|_I400000W)JVcMKRL2<NyEwOo{FfDMTb7zXAXN01pL7X+$I-0Lq#"
    ">NCQM9C`gIIOex|?iNuQyOcekCNP+tQHEsb9jspMx|Aom9kNW=q|1tLI0RI2~F~ElfL=^x4MKQoZxhDVs07Ws<Oo_-$i"
    "N{Qd#!QLA4+Thz6<Y-W08C@}Oo_-yiBu#AOo_q|1xSg<NQ+b?2)OD1002yh{tpE~zaszu08EMROo_%!iNa<NZxspw002"
    "yh_zx*mBp?q3iv`*g004!+4}`n`004^x%oG3sg}`-lPmMe_>2Lo3|F{7F004&tuoM6Qg}@JmcmDtXNR2%e1pol(VEX_6"
    ">1O`_|BD5c6aWB)zz>B>{{R2!{QUp_4<Cd800000iv?m7004!+50AP2|NliX(zwb1001%ex&Z(H07#8JP!s?F4+ZI*{{"
    "R1r1yd9N0ENJGgE7)YG19mv0000;iPuPp)=XmsG!y^;Op6U=1ONaJ1xSg<Oo_(0>Hq)$Oo_@51?f)z|NrQL_y7MzF~CJ"
    "J(oBi?W)E*2AOHXWOo{JIiN;Kc!Vf82Bp?q3=^6k3|7I=^AA|q^0001x000000000004*^A000000000000000Ktc}"
)
"""In base 85; the rest of the pages is zero."""
