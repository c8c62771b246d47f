PARAM cliente AS string LIKE "João da Silva" DESCRIPTION "Nome completo do cliente"
PARAM quantidade AS integer LIKE 3 DESCRIPTION "Quantidade de itens"
PARAM observacao AS string LIKE "Sem cebola, por favor" DESCRIPTION "Observações do pedido" OPTIONAL

DESCRIPTION "Faz o cadastro de um pedido no restaurante"

preco = 25.5
valor = quantidade * preco
situacao = "em preparação"

IF NOT observacao THEN
    observacao = "nenhuma"
END IF

WITH pedido
    cliente = cliente
    quantidade = quantidade
    valor = valor
    situacao = situacao
END WITH

SAVE "pedidos.csv", pedido

BEGIN TALK
Olá, ${cliente}! Seu pedido está ${pedido.situacao}.
Total: R$ ${FORMAT(valor, "#,##0.00")}
Observação: ${observacao}
END TALK

RETURN valor
