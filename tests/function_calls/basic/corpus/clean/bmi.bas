param peso as float like 72.5 description "Peso em kg"
param altura as float like 1.80 description "Altura em metros"
description "Calcula o IMC"

imc = peso / altura ^ 2
if imc < 18.5 then
   faixa = "abaixo do peso"
elseif imc < 25 then
   faixa = "normal"
else if imc < 30 then
   faixa = "sobrepeso"
else
   faixa = "obesidade"
endif
talk "Seu IMC é " + format(imc, "0.0") + " (" + faixa + ")"
return round(imc, 1)
