' Reserva de quadra do clube
PARAM data AS date LIKE "2026-03-14" DESCRIPTION "Dia da reserva"
PARAM hora AS hour LIKE "18:30" DESCRIPTION "Hora de início"
PARAM jogadores AS integer LIKE 4 DESCRIPTION "Quantos jogadores vêm"
DESCRIPTION "Reserva uma quadra de tênis no clube"

ocupadas = FIND "reservas", "data = '" + data + "' AND hora = '" + hora + "'"
IF ocupadas THEN
    TALK "Essa hora já foi reservada por ${ocupadas.nome}."
    RETURN "ocupada"
END IF

WITH reserva
    id = "R-" + FORMAT NOW() AS "YYYYMMDD" + "-" + FORMAT RANDOM(1000, 9999)
    nome = username
    data = data
    hora = hora
    jogadores = jogadores
END WITH

SAVE "reservas", reserva.id, reserva
BEGIN TALK
Olá ${username}! Sua reserva está confirmada.
Dia: ${FORMAT(data, "dd/MM/yyyy")} às ${hora}, ${jogadores} jogadores
Código: ${reserva.id}
END TALK
RETURN LEN(reserva.id)
