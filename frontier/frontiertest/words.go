package frontiertest

import "strings"

// Words make paths as sites have them, for URLs of benchmarks.
var Words = strings.Fields(`about account archive article autumn basic blog books camera catalog category city classic
	coffee comment contact cotton design detail download editor energy event family feature fiction finance forest garden
	gallery green guide health history home house image index item journal kitchen landscape leather library light list
	local machine magazine market member metal modern mountain music nature network news number office online orange
	outdoor page paper partner people photo planet policy press price product profile project question radio recipe
	record report review river school science search season section series service shop silver single space special
	sport standard station storage story street studio summer support system table technology theatre thread topic
	travel university update user vintage water weather weekend window winter wooden world`)
