; States cut by the same rule line up, for every size; other rules may not
;
; Witness flat_and_by_tensor
; Two tensors of 3 and 1 elements on two devices. Flat, in chunks of 2, element 2 lies on device 1; whole tensors dealt out,
; it lies with its tensor on device 0.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const c Int)
(declare-const e Int)
(declare-const q Int)
(declare-const j Int)
(assert (and (>= c 1) (>= e 0)))
(define-fun at ((x Int) (i Int) (chunk Int)) Bool (and (= e (+ (* x chunk) i)) (<= 0 i) (< i chunk)))
(declare-const flat Int)
(declare-const by_tensor Int)
(assert (and (= e 2) (= c 2) (= q 1) (= j 0)))
(assert (and (at q j c) (= flat q) (= by_tensor 0)))
(assert (distinct flat by_tensor))
(check-sat)
