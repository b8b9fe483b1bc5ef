module a.guest

go 1.24
