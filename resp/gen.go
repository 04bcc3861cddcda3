package resp

//go:generate go run ../scripts/gen_keys -root ..
