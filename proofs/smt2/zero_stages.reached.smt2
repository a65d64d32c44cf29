; Data parallelism and the ZeRO stages meet state consistency
;
; Proof reached
; Who does not update is not the owner, and is reached by the gather.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-sort Device 0)
(declare-sort Element 0)
(declare-fun owner (Element) Device)
(declare-const x Device)
(declare-const e Element)
(declare-datatypes ((Stage 0)) (((ddp) (one) (two) (three))))
(declare-const stage Stage)
(define-fun holds ((y Device) (f Element)) Bool (or (distinct stage three) (= y (owner f))))
(define-fun has_gradient ((y Device) (f Element)) Bool (or (= stage ddp) (= stage one) (= y (owner f))))
(define-fun has_moments ((y Device) (f Element)) Bool (or (= stage ddp) (= y (owner f))))
(define-fun updates ((y Device) (f Element)) Bool (and (holds y f) (has_gradient y f) (has_moments y f)))
(define-fun source ((y Device) (f Element)) Device (ite (= stage ddp) y (owner f)))
(define-fun gathered () Bool (distinct stage ddp))
(assert (and (holds x e) (not (updates x e))))
(assert (not (and gathered (distinct x (owner e)) (updates (owner e) e))))
(check-sat)
