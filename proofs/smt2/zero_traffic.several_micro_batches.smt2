; ZeRO-3 sends 3/2 of what data parallelism sends, for every N
;
; Witness several_micro_batches
; With M = 2 micro-batches that each gather, and one reduction at the end, it is 5/2: the assumption cannot be dropped.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const N Int)
(declare-const M Int)
(declare-const s Real)
(declare-const r Real)
(assert (and (>= N 1) (>= M 1) (> s 0.0) (= (* (to_real N) r) (* (to_real (- N 1)) s))))
(define-fun data_parallel () Real (* 2.0 r))
(define-fun zero1 () Real (+ r r))
(define-fun zero3 ((turns Int)) Real (+ (* (to_real turns) (+ r r)) r))
(assert (and (= N 2) (= M 2) (= s 2.0) (= r 1.0)))
(assert (= (* 2.0 (zero3 M)) (* 5.0 data_parallel)))
(check-sat)
