; States cut by the same rule line up, for every size; other rules may not
;
; Witness rows_and_columns
; A 2 x 2 matrix cut by rows in one state and by columns in the other: element (0, 1) lies on device 0 and on device 1.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const c Int)
(declare-const e Int)
(declare-const q Int)
(declare-const j Int)
(assert (and (>= c 1) (>= e 0)))
(define-fun at ((x Int) (i Int) (chunk Int)) Bool (and (= e (+ (* x chunk) i)) (<= 0 i) (< i chunk)))
(declare-const row Int)
(declare-const column Int)
(assert (and (= e 1) (= row 0) (= column 1) (= e (+ (* row 2) column))))
(assert (distinct row column))
(check-sat)
